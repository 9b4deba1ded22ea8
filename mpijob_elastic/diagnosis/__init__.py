"""Why a worker is not training, and what to do next; `explanation.diagnose` answers."""
