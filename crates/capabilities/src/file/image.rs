//! Where an image is: under a name in a registry, or in a file beside the engine file.
//!
//! Owns the form of names. What a registry is asked, and what is in an image, is the crate `engine`'s.
//!
//! Source: OCI distribution specification 1.1, "Pulling manifests"; OCI image specification 1.1, "Digests".

/// The registry of names that give none.
const USUAL_REGISTRY: &str = "docker.io";
/// Where that registry keeps what has a name of one word.
const USUAL_FOLDER: &str = "library";
/// What a digest begins with; no other kind is understood.
const SHA256: &str = "sha256:";
/// Characters of a tag at most.
const MOST_OF_A_TAG: usize = 128;
/// Characters of a registry and the path in it at most.
const MOST_OF_A_PATH: usize = 255;

/// Where an image is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageSource {
    /// In a registry.
    Registry(ImageName),
    /// In a folder or an archive, by its path from the engine file's folder.
    File(String),
}

/// An image's name in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageName {
    /// The registry's host, with its port where it has one.
    pub registry: String,
    /// The path there.
    pub repository: String,
    /// The tag; there is one where there is no digest.
    pub tag: Option<String>,
    /// The SHA-256 of the manifest, in hexadecimal digits.
    pub sha256: Option<String>,
}

/// Why a text names no image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameMistake {
    /// It says nothing of a version.
    Unpinned,
    /// What stands behind `@` is not a digest.
    Digest,
    /// What stands behind the last colon is not a tag.
    Tag,
    /// What stands before the first slash is not a host.
    Registry,
    /// The rest is not a path.
    Path,
}

impl NameMistake {
    /// What is wrong, in a few words.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            NameMistake::Unpinned => "neither a tag nor a digest",
            NameMistake::Digest => "not a digest behind the `@`",
            NameMistake::Tag => "not a tag behind the colon",
            NameMistake::Registry => "not a registry's host",
            NameMistake::Path => "not the form of a name",
        }
    }

    /// What to do.
    #[must_use]
    pub fn help(self) -> &'static str {
        match self {
            NameMistake::Unpinned => {
                "add the version: `name:2.1`, or `name@sha256:` and the digest; a file begins with `./`"
            }
            NameMistake::Digest => {
                "write `sha256:` and 64 hexadecimal digits, the small letters a to f among them"
            }
            NameMistake::Tag => "a tag has letters, digits, `_`, `.` and `-`, at most 128",
            NameMistake::Registry => {
                "write the host, with its port if it has one: `registry.example.com:5000/name:2.1`"
            }
            NameMistake::Path => {
                "write small letters and digits, with `.`, `_` or `-` between; a file begins with `./`"
            }
        }
    }
}

/// Whether a text means a file, not a name.
#[must_use]
pub fn is_path(written: &str) -> bool {
    written.starts_with(['.', '/'])
}

impl ImageName {
    /// Reads a name: `thing:1.2`, `registry.example.com:5000/team/thing:1.2@sha256:...`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(written: &str) -> Result<ImageName, NameMistake> {
        let (rest, sha256) = match written.split_once('@') {
            Some((rest, digest)) => (rest, Some(sha256(digest).ok_or(NameMistake::Digest)?)),
            None => (written, None),
        };
        let (path, tag) = match rest.rsplit_once(':') {
            // Behind the port of a registry the path goes on.
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
            _ => (rest, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(NameMistake::Tag);
        }
        if tag.is_none() && sha256.is_none() {
            return Err(NameMistake::Unpinned);
        }
        let (registry, repository) = match path.split_once('/') {
            Some((host, repository)) if is_meant_as_host(host) => (host, repository),
            _ => (USUAL_REGISTRY, path),
        };
        if !is_host(registry) {
            return Err(NameMistake::Registry);
        }
        let repository = match registry == USUAL_REGISTRY && !repository.contains('/') {
            true => format!("{USUAL_FOLDER}/{repository}"),
            false => repository.to_owned(),
        };
        if registry.len() + repository.len() >= MOST_OF_A_PATH || !repository.split('/').all(is_part) {
            return Err(NameMistake::Path);
        }
        Ok(ImageName { registry: registry.to_owned(), repository, tag: tag.map(str::to_owned), sha256 })
    }
}

impl std::fmt::Display for ImageName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.sha256 {
            Some(sha256) => write!(f, "@{SHA256}{sha256}"),
            None => Ok(()),
        }
    }
}

/// The hexadecimal digits of a digest.
fn sha256(digest: &str) -> Option<String> {
    let digits = digest.strip_prefix(SHA256)?;
    is_sha256(digits).then(|| digits.to_owned())
}

/// Whether these are the digits of a SHA-256 as images name their parts: 64, hexadecimal, in small letters (OCI image
/// specification 1.1, "Digests").
#[must_use]
pub fn is_sha256(digits: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digits.len() == 64 && digits.bytes().all(is_digit)
}

fn is_tag(tag: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= MOST_OF_A_TAG
        && tag.starts_with(is_word)
        && tag.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

/// Whether the first part of a path is a host: it has a dot or a port, or is this machine.
fn is_meant_as_host(part: &str) -> bool {
    part == "localhost" || part.contains(['.', ':'])
}

fn is_host(written: &str) -> bool {
    let (host, port) = match written.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (written, None),
    };
    let is_label = |label: &str| {
        let ends = |c: char| c.is_ascii_alphanumeric();
        label.starts_with(ends) && label.ends_with(ends) && label.chars().all(|c| ends(c) || c == '-')
    };
    let is_port = |port: &str| {
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

/// A part of a path between slashes.
fn is_part(part: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.starts_with(is_word)
        && part.ends_with(is_word)
        && part.chars().all(|c| is_word(c) || matches!(c, '.' | '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn read(written: &str) -> Result<String, NameMistake> {
        ImageName::parse(written).map(|name| name.to_string())
    }

    #[test]
    fn a_name_without_a_registry_is_one_of_the_usual_registry() {
        assert_eq!(read("thing:1.2").as_deref(), Ok("docker.io/library/thing:1.2"));
        assert_eq!(read("docker.io/thing:1.2").as_deref(), Ok("docker.io/library/thing:1.2"));
        assert_eq!(read("team/thing:1.2").as_deref(), Ok("docker.io/team/thing:1.2"));
    }

    #[test]
    fn what_has_a_dot_or_a_port_before_the_first_slash_is_a_registry() {
        for name in [
            "localhost/thing:1",
            "localhost:5000/thing:1",
            "127.0.0.1:5000/a/b/c:v1",
            "r.example.com/thing:1",
        ] {
            assert_eq!(read(name).as_deref(), Ok(name));
        }
    }

    #[test]
    fn a_digest_stands_behind_the_tag_or_alone() {
        for name in
            [format!("r.example.com/thing:1@sha256:{DIGITS}"), format!("r.example.com/thing@sha256:{DIGITS}")]
        {
            assert_eq!(read(&name).as_deref(), Ok(name.as_str()));
        }
        let name = ImageName::parse(&format!("thing@sha256:{DIGITS}")).expect("a name");
        assert_eq!((name.tag, name.sha256.as_deref()), (None, Some(DIGITS)));
    }

    #[test]
    fn a_name_that_could_mean_several_images_or_none_is_refused_with_what_is_wrong() {
        for (name, expected) in [
            ("thing", NameMistake::Unpinned),
            ("localhost:5000/thing", NameMistake::Unpinned),
            ("thing:1@sha256:12", NameMistake::Digest),
            ("thing@md5:0123456789abcdef", NameMistake::Digest),
            ("thing:", NameMistake::Tag),
            ("thing:-1", NameMistake::Tag),
            ("thing:1 2", NameMistake::Tag),
            ("r..example.com/thing:1", NameMistake::Registry),
            ("r.example.com:70000/thing:1", NameMistake::Registry),
            ("Thing:1", NameMistake::Path),
            ("team//thing:1", NameMistake::Path),
            ("a/../thing:1", NameMistake::Path),
            (":1", NameMistake::Path),
        ] {
            assert_eq!(read(name), Err(expected), "{name}");
        }
    }

    #[test]
    fn a_path_is_told_by_its_first_letter() {
        for path in ["./image.tar", "../image.tar", "/srv/image.tar", "."] {
            assert!(is_path(path), "{path}");
        }
        assert!(!is_path("image.tar:1"));
    }
}
