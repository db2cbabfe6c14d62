//! The load generator: loops over clients, recording into measure and history
