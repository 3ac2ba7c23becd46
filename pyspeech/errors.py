"""The one exception that stands for a mistake the user can mend."""


class UserError(Exception):
    """One line for the user: which file or option, what was found, what was expected, what to do.

    Command-line tools and the recipe engine print its message without a traceback and exit with status 1.
    """
