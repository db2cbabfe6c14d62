//! Whether the kernel knows IPv6 at all.

use std::path::Path;

/// Whether the kernel knows IPv6.
#[must_use]
pub fn has_ipv6() -> bool {
    Path::new("/proc/sys/net/ipv6").is_dir()
}
