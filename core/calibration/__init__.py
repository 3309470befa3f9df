"""From signals and labels to a decision: what `core.confidence` and `core.conformal` are two views of.

Signals are weighed to one confidence (`weighted`), which a map may turn into a probability (`mapping`);
`in_use` says which of these a run has. Labelled answers are kept in a store with what identifies them
(`store`, `provenance`), and a run keeps what it was calibrated with (`saved`).
"""
