"""Languages by name and by code: what folders and options call them, and the code that manifests have."""

import re
from collections.abc import Iterable, Sequence

from pyspeech.errors import UserError


def choose_codes(there: Sequence[str], wanted: Iterable[str], name: str) -> list[str]:
    """Select the wanted codes of those that are `there`, all where `wanted` is empty.

    wanted: codes or names of languages. UserError, in which the corpus is called `name`, for one that is not there.
    """
    wanted = [language_code(language) or language for language in wanted]
    absent = [language for language in wanted if language not in there]
    if absent:
        raise UserError(f"{name}: languages: there is no {', '.join(absent)}; there are {', '.join(there)}")
    return [language for language in there if language in wanted or not wanted]


NAMES = dict(
    re.findall(
        r"(\S+)=(\S*)",
        "assamese=as bengali=bn bangla=bn bodo=brx dogri=doi english=en gujarati=gu hindi=hi kannada=kn kashmiri=ks "
        "konkani=kok maithili=mai malayalam=ml manipuri=mni marathi=mr nepali=ne odia=or oriya=or panjabi=pa punjabi=pa "
        "sanskrit=sa santali=sat sindhi=sd tamil=ta telugu=te urdu=ur",
    )
)
ELSEWHERE = dict(
    re.findall(
        r"(\S+)=(\S*)",
        "arabic=ar bulgarian=bg catalan=ca chinese=zh czech=cs danish=da dutch=nl farsi=fa finnish=fi french=fr german=de "
        "greek=el hebrew=he hungarian=hu indonesian=id italian=it japanese=ja korean=ko mandarin=zh norwegian=no persian=fa "
        "polish=pl portuguese=pt romanian=ro russian=ru spanish=es swahili=sw swedish=sv thai=th turkish=tr ukrainian=uk "
        "vietnamese=vi",
    )
)
INDIAN = set(NAMES.values())


def language_code(name: str) -> str | None:
    """The code that a folder's name or an option stands for; None where it names no language.

    "Gujarati", "gu", "gu-in" and "GU_IN" are gu-IN; languages of India (English among them) get the region IN where
    none is given, others get none.
    """
    words = [word for word in re.split(r"[^a-z]+", name.lower()) if word]
    for word in words:
        if word in NAMES:
            return f"{NAMES[word]}-IN"
        if word in ELSEWHERE:
            return ELSEWHERE[word]
    if not words or words[0] not in INDIAN | set(ELSEWHERE.values()):
        return None
    if len(words) == 1:
        return f"{words[0]}-IN" if words[0] in INDIAN else words[0]
    return f"{words[0]}-{words[1].upper()}" if len(words) == 2 and len(words[1]) == 2 else None


def utterance_language(said: str | None, above: str | None, wanted: Sequence[str]) -> str | None:
    """Code of an utterance's language: that which it says itself, else that of the folder or file `above`, else the only one
    `wanted`; None where nothing says any."""
    if said:
        return language_code(said) or said
    if above or len(wanted) != 1:
        return above
    return language_code(wanted[0]) or wanted[0]
