"""Reading audio of any rate, format and length."""
