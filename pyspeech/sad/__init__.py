"""Speech activity detection: statistical and neural (Heitkaemper et al. 2020)."""
