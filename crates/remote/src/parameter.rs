//! What a user may put into a command: the kinds of parameters, and what each lets through.
//!
//! Every kind is narrow on purpose. Quoting keeps a value within its argument; but nft, tc and systemctl read languages of
//! their own inside an argument, and a value that begins with a hyphen is an option. So no kind is free text.

use std::net::Ipv4Addr;

use yaml::units;

/// A parameter of a command file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    /// What it may be.
    pub kind: Kind,
    /// What it means.
    pub meaning: String,
    /// What it is where nobody says, as written.
    pub default: Option<String>,
    /// A value that it may have, as written.
    pub example: String,
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The name of a unit, an interface, a machine.
    Name,
    /// A name that may have slashes, or nothing.
    OptionalName,
    /// An absolute path.
    Path,
    /// An absolute path, or nothing.
    OptionalPath,
    /// IPv4 addresses with commas between them.
    Ipv4List,
    /// One IPv4 address.
    Ipv4,
    Duration,
    /// A percentage.
    Percent,
    /// A whole number.
    Count,
}

/// Longest value.
const MOST_BYTES: usize = 4096;

impl Kind {
    /// All of them by the word for each.
    pub const WORDS: &[(&'static str, Kind)] = &[
        ("name", Kind::Name),
        ("optional-name", Kind::OptionalName),
        ("path", Kind::Path),
        ("optional-path", Kind::OptionalPath),
        ("ipv4", Kind::Ipv4),
        ("ipv4-list", Kind::Ipv4List),
        ("duration", Kind::Duration),
        ("percent", Kind::Percent),
        ("count", Kind::Count),
    ];

    /// The words alone.
    pub(crate) const NAMES: &[&'static str] = &[
        "name",
        "optional-name",
        "path",
        "optional-path",
        "ipv4",
        "ipv4-list",
        "duration",
        "percent",
        "count",
    ];

    /// What it lets through, in words.
    #[must_use]
    pub fn form(self) -> &'static str {
        match self {
            Kind::Name => {
                "letters, digits and `.`, `_`, `@`, `:`, `-`, not beginning with a hyphen (postgresql@15-main.service)"
            }
            Kind::Path => {
                "an absolute path without `..`, quotes and other signs of a shell (/run/postgresql/15-main.pid)"
            }
            Kind::OptionalName => {
                "nothing, or letters, digits and `.`, `_`, `@`, `:`, `/`, `-`, the first a letter or a digit (kind-lab)"
            }
            Kind::OptionalPath => "nothing, or a path as of the kind `path` (/etc/lab/kubeconfig)",
            Kind::Ipv4 => "an IPv4 address (10.0.0.2)",
            Kind::Ipv4List => "IPv4 addresses with commas (10.0.0.2, 10.0.0.3)",
            Kind::Duration => "a duration (50ms); commands get it in microseconds (50000us)",
            Kind::Percent => "a percentage (1%)",
            Kind::Count => "a whole number (3)",
        }
    }

    /// The value as commands get it; none where it is not of this kind.
    #[must_use]
    pub fn accepted(self, text: &str) -> Option<String> {
        if text.len() > MOST_BYTES {
            return None;
        }
        let made_of = |signs: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || signs.contains(c));
        match self {
            Kind::Name => {
                let fits =
                    !text.is_empty() && !text.starts_with('-') && made_of("._@:-") && text.len() <= 255;
                fits.then(|| text.to_owned())
            }
            Kind::OptionalName => {
                let begins = text.is_empty() || text.starts_with(|c: char| c.is_ascii_alphanumeric());
                (begins && made_of("._@:/-") && text.len() <= 255).then(|| text.to_owned())
            }
            Kind::OptionalPath if text.is_empty() => Some(String::new()),
            Kind::Path | Kind::OptionalPath => {
                let stays = text.split('/').all(|part| part != "..");
                (text.starts_with('/') && stays && made_of("/._@:+,-")).then(|| text.to_owned())
            }
            Kind::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|address| address.to_string()),
            Kind::Ipv4List => {
                let each = text.split(',').map(|part| part.trim().parse::<Ipv4Addr>().ok());
                let mut addresses = each.collect::<Option<Vec<_>>>()?;
                addresses.sort();
                addresses.dedup();
                Some(addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
            Kind::Duration => {
                units::duration(text, "ms").ok().map(|length| format!("{}us", length.as_micros()))
            }
            Kind::Percent => units::percent(text).ok().map(units::format_percent),
            Kind::Count => text.parse::<u32>().ok().map(|count| count.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_kinds() {
        let words: Vec<&str> = Kind::WORDS.iter().map(|(word, _)| *word).collect();
        assert_eq!(words, Kind::NAMES);
    }

    #[test]
    fn each_kind_gives_what_commands_get() {
        let given = |kind: Kind, text: &str| kind.accepted(text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(given(Kind::Name, "postgresql@15-main.service"), "postgresql@15-main.service");
        let context = "arn:aws:eks:eu-west-1:111122223333:cluster/lab";
        assert_eq!(given(Kind::OptionalName, context), context);
        assert_eq!(given(Kind::OptionalName, ""), "");
        assert_eq!(given(Kind::OptionalPath, "/etc/lab/kubeconfig"), "/etc/lab/kubeconfig");
        assert_eq!(given(Kind::OptionalPath, ""), "");
        assert_eq!(given(Kind::Path, "/run/postgresql/15-main.pid"), "/run/postgresql/15-main.pid");
        assert_eq!(given(Kind::Ipv4List, "10.0.0.3,10.0.0.2, 10.0.0.3"), "10.0.0.2, 10.0.0.3");
        assert_eq!(given(Kind::Duration, "50ms"), "50000us");
        assert_eq!(given(Kind::Percent, "1%"), "1%");
    }

    #[test]
    fn nothing_that_a_tools_own_language_could_read_gets_through() {
        for kind in Kind::WORDS.iter().map(|(_, kind)| *kind) {
            let may_be_empty = matches!(kind, Kind::OptionalName | Kind::OptionalPath);
            assert_eq!(kind.accepted("").is_some(), may_be_empty, "{kind:?}");
            for text in [
                "-rf",
                "--now",
                "a b",
                "a;b",
                "{ drop }",
                "$HOME",
                "a\nb",
                "a\0b",
                "'",
                "\"",
                "`x`",
                "/a/../b",
                "*",
                "10.0.0.1 } ; flush ruleset",
                "(x)",
                "a\\b",
                "a|b",
                "a&b",
                "<x",
                "#x",
                "!x",
                "~",
            ] {
                assert_eq!(kind.accepted(text), None, "{kind:?} {text:?}");
            }
        }
    }
}
