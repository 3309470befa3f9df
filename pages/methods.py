from ui import glossary, show
from ui.router import require_entrypoint

require_entrypoint()
show.heading(
    "Methods and glossary", "What every number means, how it is computed, and what it cannot tell you."
)

glossary.contents()
glossary.every_diagnostic()
glossary.tables()
