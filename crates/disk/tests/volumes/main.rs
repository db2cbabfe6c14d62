//! Random operations on volumes in this process, alone and mirrored: after every power-off there is what the crate promises.
//!
//! Volumes that the kernel mounts are tested by `mounted`, a program of its own: it enters namespaces and starts itself again.

mod against_a_model;
mod mirror;
