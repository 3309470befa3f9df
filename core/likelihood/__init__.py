"""How far each passage raises the log-probability of the answer that was given, and of the reference."""
