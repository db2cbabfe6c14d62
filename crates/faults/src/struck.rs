//! What a fault hit, resolved to places of the site when it struck: facts for predictions, which read no words.

/// Names from the region inwards to a host at most; a node stands for its host.
pub type HostPath = Vec<String>;

/// One end of a direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Everything that the other end is not.
    EverythingElse,
    /// A place.
    At(HostPath),
}

/// What a fault hit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Struck {
    /// Nothing answered to the target.
    #[default]
    Nothing,
    /// These hosts lost power.
    Hosts(Vec<HostPath>),
    /// Packets from the first to the second end of each.
    Directions(Vec<(End, End)>),
    Disk {
        host: HostPath,
        /// Its name there.
        disk: String,
    },
    /// The nodes on these hosts.
    Nodes(Vec<HostPath>),
    /// Processes of the database on a node.
    Processes {
        /// The node's host.
        host: HostPath,
        /// Whether all of the node's were struck, and not one program of several.
        all: bool,
        /// Whether it ends them.
        ends: bool,
    },
}

impl Struck {
    /// The directions between paths of the fabric, where no path is everything else and a node's path is one of `nodes`.
    #[must_use]
    pub fn directions(ends: &[(Vec<String>, Vec<String>)], nodes: &[Vec<String>]) -> Struck {
        let end = |path: &Vec<String>| match path.as_slice() {
            [] => End::EverythingElse,
            [host @ .., _] if nodes.contains(path) => End::At(host.to_vec()),
            place => End::At(place.to_vec()),
        };
        Struck::Directions(ends.iter().map(|(from, to)| (end(from), end(to))).collect())
    }

    /// A disk by its full name: the host's path and the disk's own name.
    #[must_use]
    pub fn disk(full_name: &str) -> Struck {
        let mut host: Vec<String> = full_name.split('/').map(str::to_owned).collect();
        let disk = host.pop().unwrap_or_default();
        Struck::Disk { host, disk }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn a_host_that_is_called_like_a_node_stays_a_host() {
        let nodes = [path("dc1/a/n1/n1"), path("dc1/a/h2/n2")];
        let ends = [(path("dc1/a/n1"), path("")), (path("dc1/a/n1/n1"), path("dc1/a/h2/n2"))];
        let expected = Struck::Directions(vec![
            (End::At(path("dc1/a/n1")), End::EverythingElse),
            (End::At(path("dc1/a/n1")), End::At(path("dc1/a/h2"))),
        ]);
        assert_eq!(Struck::directions(&ends, &nodes), expected);
    }
}
