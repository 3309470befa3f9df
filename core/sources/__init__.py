"""Files, data sets and the simulation: everything that becomes a `Run` or a `Dataset`."""
