from ui import data, show
from ui.router import require_entrypoint

require_entrypoint()
show.heading("Data", "Import, simulate, open or export runs.")
data.door()
