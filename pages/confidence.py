import streamlit as st

from ui import headlines, job_panel, show, step_form, worklist
from ui.router import require_entrypoint

require_entrypoint()
headlines.heading("confidence")

job_panel.draw("confidence")
if show.needs_run():
    if missing := headlines.lacks("confidence"):
        with st.container(border=True):
            st.markdown(missing)
            step_form.on_loaded_run("confidence", "Measure signals")
    else:
        headlines.body("confidence")
        with st.expander("Measure again with other options", icon=":material/refresh:"):
            st.markdown("The result is a new run; this one stays as it is.")
            step_form.on_loaded_run("confidence", "Measure again")

        st.subheader("Questions", anchor=False)
        worklist.draw("confidence")
