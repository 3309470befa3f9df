"""What people noted of the questions of a run, kept beside the run; how far they agree; their labels."""

from core.reviews.agreement import Agreement, agreements, disputed
from core.reviews.labels import Labels, labelled
from core.reviews.review import DISPUTED, LABELS, LONGEST_NOTE, STATUSES, ByPerson, ChangedMeanwhile, Review
from core.reviews.store import READER, ReviewStore, combined, delete, path_of, read, read_all, write_all

__all__ = [
    "DISPUTED",
    "LABELS",
    "LONGEST_NOTE",
    "READER",
    "STATUSES",
    "Agreement",
    "ByPerson",
    "ChangedMeanwhile",
    "Labels",
    "Review",
    "ReviewStore",
    "agreements",
    "combined",
    "delete",
    "disputed",
    "labelled",
    "path_of",
    "read",
    "read_all",
    "write_all",
]
