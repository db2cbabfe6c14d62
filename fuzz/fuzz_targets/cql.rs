//! Any bytes as answers of a server of CQL: reading them must not panic, nor keep more than they hold. Knows nothing of
//! sockets.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| client::cql::read_any(bytes));
