//! The composition root: plan, lab, engine, load and schedule, checks, run directory
