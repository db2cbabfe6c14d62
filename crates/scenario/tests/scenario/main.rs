//! The scenario language, text in and scenario or refusal out: what is read, what is refused with which message, and that
//! the JSON Schema and the shipped scenarios agree with the reader.

mod disks;
mod expectations;
mod external;
mod language;
mod matrix;
mod migrations;
mod network;
mod pods;
mod processes;
mod reading;
mod refusals;
mod rejected;
mod robustness;
mod schema;
mod shipped;
