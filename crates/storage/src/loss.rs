//! What a power-off took from a volume or a component of one, as evidence.

use disk::Lost;
use history::Verdict;

/// What a power-off took, as evidence.
pub(crate) fn loss_in_words(what: &str, lost: &Result<Lost, String>) -> (Verdict, String) {
    match lost {
        Ok(lost) => (Verdict::Pass, in_words(what, lost)),
        Err(why) => {
            (Verdict::Unknown, format!("{what} could not be brought back to what was durable: {why}"))
        }
    }
}

fn in_words(what: &str, lost: &Lost) -> String {
    let mut parts = Vec::new();
    let mut say = |count: u64, one: &str, many: &str| {
        if count > 0 {
            parts.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
    };
    say(lost.blocks_restored, "overwritten block of 4 KiB", "overwritten blocks of 4 KiB");
    say(lost.bytes_cut, "appended byte", "appended bytes");
    say(lost.operations, "change of names", "changes of names");
    say(lost.attributes, "change of mode, owner or attributes", "changes of mode, owner or attributes");
    let torn = match lost.sectors_survived {
        0 => String::new(),
        sectors => format!("; of its last write {sectors} sectors survived"),
    };
    if parts.is_empty() {
        return format!("{what} lost nothing: all was synced{torn}");
    }
    format!("{what} lost what was not synced: {}{torn}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lost: Lost, expected: &str) {
        assert_eq!(in_words("the volume of n1", &lost), expected);
    }

    #[test]
    fn a_loss_is_told_by_what_was_lost() {
        check(Lost::default(), "the volume of n1 lost nothing: all was synced");
        check(
            Lost { blocks_restored: 3, bytes_cut: 1, files: 2, ..Lost::default() },
            "the volume of n1 lost what was not synced: 3 overwritten blocks of 4 KiB, 1 appended byte",
        );
        check(
            Lost { operations: 1, sectors_survived: 5, ..Lost::default() },
            "the volume of n1 lost what was not synced: 1 change of names; of its last write 5 sectors survived",
        );
    }
}
