"""A package, for pytest: its browser is closed after the last of its tests."""
