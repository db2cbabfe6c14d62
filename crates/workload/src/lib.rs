//! What the clients ask, transaction by transaction; one file per workload
