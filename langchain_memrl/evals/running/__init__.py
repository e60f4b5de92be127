"""How a run is carried out: recalling, trying, learning, recording, going on after a stop."""
