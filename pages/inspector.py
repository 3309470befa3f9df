from ui import inspector, questions, show
from ui.router import require_entrypoint

require_entrypoint()
show.heading("Question inspector", "One question: its answer, and what every diagnostic says of it.")

if show.needs_run():
    chosen = questions.deep_linked_picker()
    if chosen is not None:
        inspector.question(chosen)
        inspector.every_section(chosen)
