//! The first error of each class of a load, in words, with a hint where the cause is plain.
//!
//! Owns the hints. The errors are the load's.

use history::{FirstError, TOO_MANY_CONNECTIONS};

use crate::format;

/// One error as a sentence: `other 42P01 at 0.31 s, n1: relation "t" does not exist`.
pub(crate) fn told(error: &FirstError) -> String {
    let code = error.code.as_ref().map_or_else(String::new, |code| format!(" {code}"));
    let node = error.node.as_ref().map_or_else(String::new, |node| format!(", {node}"));
    let at = format::seconds(error.at_s);
    format!("{}{code} at {at}{node}: {}", error.class.name(), error.text)
}

/// What is probably wrong, by the server's code: PostgreSQL's of five signs (appendix A of its manual), MySQL's and
/// MariaDB's decimal ones ("Server Error Message Reference"), CQL's with `0x` ("CQL binary protocol v4", section 9).
pub(crate) fn hint(error: &FirstError) -> Option<&'static str> {
    Some(match error.code.as_deref()? {
        "42P01" | "1146" => "The table does not exist: did you forget --prepare, or the `setup` of a script?",
        "42703" | "1054" => {
            "A column is missing: the tables belong to another workload. Recreate them with --prepare."
        }
        "23505" | "1062" => {
            "The row already exists: the tables hold an earlier load's rows. Recreate them with --prepare."
        }
        "28P01" | "28000" => "The server refuses this user: check user, password and pg_hba.conf.",
        "1045" => {
            "The server refuses this user: check user and password, and from where the user may connect."
        }
        "3D000" | "1049" => "The database does not exist: check the name in the URL.",
        "42501" => "The user lacks a privilege on these tables.",
        code if TOO_MANY_CONNECTIONS.contains(&code) => {
            "The server has no connection left: use fewer clients or raise max_connections."
        }
        "53100" => "The server's disk is full.",
        "0x2200" => {
            "The statement does not fit the tables: did you forget --prepare, or do they belong to another workload?"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use history::ErrorClass;

    use super::*;

    #[test]
    fn an_error_is_told_with_its_code_time_and_node_and_a_missing_table_with_a_hint() {
        let mut error = FirstError {
            class: ErrorClass::Other,
            code: Some("42P01".to_owned()),
            text: "relation \"t\" does not exist".to_owned(),
            node: Some("n1".to_owned()),
            at_s: 12.3,
        };
        let told = super::told(&error).replace('\u{a0}', " ");
        assert_eq!(told, "other 42P01 at 12.3 s, n1: relation \"t\" does not exist");
        assert!(hint(&error).is_some_and(|hint| hint.contains("--prepare")));
        error.code = None;
        assert_eq!(hint(&error), None);
    }

    #[test]
    fn codes_of_mysql_and_cql_have_hints_as_those_of_postgresql_have() {
        let check = |code: &str, part: &str| {
            let error = FirstError {
                class: ErrorClass::Other,
                code: Some(code.to_owned()),
                text: String::new(),
                node: None,
                at_s: 0.0,
            };
            assert!(hint(&error).is_some_and(|hint| hint.contains(part)), "{code}: {:?}", hint(&error));
        };
        check("1146", "--prepare");
        check("1054", "another workload");
        check("1062", "earlier load's rows");
        check("1045", "user and password");
        check("1049", "name in the URL");
        check("1040", "max_connections");
        check("0x2200", "--prepare");
    }
}
