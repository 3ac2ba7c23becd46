"""Errors that name the extra of the package which installs what is missing."""

import re
from pathlib import Path

import pytest

from pyspeech.errors import EXTRAS, UserError, naming_extras

PROJECT = (Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8")


def packages_of(extra):
    (text,) = re.findall(rf"^{extra} = \[(.*?)\]$", PROJECT, flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r'"([A-Za-z0-9-]+)', text))


@pytest.mark.parametrize("package, extra", [*EXTRAS.items(), ("matplotlib", "train"), ("sentencepiece", "train")])
def test_the_extra_that_is_named_has_the_package(package, extra):
    assert package in packages_of(extra)
    with pytest.raises(UserError, match=rf"^{package} is required, but not installed: pip install .*\[{extra}\]"):
        with naming_extras():
            raise ModuleNotFoundError(f"No module named '{package}'", name=f"{package}.part")
