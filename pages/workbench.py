from ui import show, workbench, worklist
from ui.router import require_entrypoint

require_entrypoint()
show.heading("Workbench", "One question: what its answer comes from, and what every diagnostic says of it.")

if show.needs_run():
    chosen = worklist.current()
    if chosen is not None:
        workbench.draw(chosen)
