//! (seed, schedule) to timed actions; says which receipt each fault needs
