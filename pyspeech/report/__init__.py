"""Tables and plots as recipes and tools show them."""
