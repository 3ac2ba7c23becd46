"""The one exception that stands for a mistake the user can mend."""

from collections.abc import Callable


class UserError(Exception):
    """One line for the user: which file or option, what was found, what was expected, what to do.

    Command-line tools and the recipe engine print its message without a traceback and exit with status 1.
    """


def requirement(section: str, config: object) -> Callable[[str, bool, str], None]:
    """require(name, good, expected) raises a UserError for the option `name` of a configuration unless `good`.

    section: what messages call the group of options, such as "training"; config: the dataclass that has it.
    """

    def require(name, good, expected):
        if not good:
            raise UserError(f"{section} option {name}={getattr(config, name)}: expected {expected}")

    return require
