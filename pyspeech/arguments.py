"""Numbers on the command lines of utils/, as types of argparse: text -> number; what else is given, its error names."""

import argparse


def whole_number(text: str, least: int = 1) -> int:
    value = int(text)
    if value < least:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of {least} or more")
    return value


def seed(text: str) -> int:
    return whole_number(text, least=0)


def length(text: str, least: float = 0.001) -> float:
    value = float(text)
    if not least <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of {least:g} or more")
    return value
