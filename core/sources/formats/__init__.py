"""Files of other tools: one module for each format, read into records and written from them."""

from core.sources.formats.importing import (
    FORMATS,
    IMPORT_FORMATS,
    INFLUENCE_CSV,
    MAPPED,
    SAMPLED,
    UnknownFormatError,
    detect,
    import_file,
    n_asked_again,
)

__all__ = [
    "FORMATS",
    "IMPORT_FORMATS",
    "INFLUENCE_CSV",
    "MAPPED",
    "SAMPLED",
    "UnknownFormatError",
    "detect",
    "import_file",
    "n_asked_again",
]
