from ui import data, show
from ui.router import require_entrypoint

require_entrypoint()
show.heading("Data", "Four doors, one room: whatever you load is shown by every page in the same way.")
data.door()
