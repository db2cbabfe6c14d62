//! Hosts and nodes as namespaces: power, limits, accounting; leaves nothing behind
