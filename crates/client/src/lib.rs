//! Connections that speak a database's protocol, behind session traits
