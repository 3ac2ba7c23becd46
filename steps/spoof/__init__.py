"""The stages of fake audio detection (egs/add2022)."""
