//! How a database is found, installed, started, joined and asked for its roles
