"""pyspeech: the library behind the recipes in egs/. Importing it is instant; torch and lhotse load where they are used."""

__version__ = "0.1.0"
