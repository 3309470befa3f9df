from ui import headlines, show, worklist
from ui.router import require_entrypoint
from ui.sections.influence import run

require_entrypoint()
if headlines.opening("influence"):
    run.measured()
    run.reported()
    run.ranks()
    run.by_rank()
    with show.more(key="influence_more") as part:
        if part.open:
            run.order_of_use()
            run.modes()
            run.agreement()
            run.spread()

    worklist.door("influence")
