//! Scripts: what they mean, what is refused and where, and that functions are distributed as documented.

use std::collections::{BTreeMap, BTreeSet};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::evaluate::evaluate;
use super::parse::{Step, parse};
use super::value::Value;
use super::variables::{DEFAULT_SEED, Names, Variables};
use super::*;
use crate::distribution::chi_square;

/// An expression's value as text, or why it has none.
fn computed(text: &str) -> String {
    let (mut names, mut variables) = (Names::default(), Variables::default());
    for (name, value) in
        [("a", Value::Integer(7)), ("text", Value::Text("12".to_owned())), (DEFAULT_SEED, Value::Integer(5))]
    {
        variables.set(&names.variable(name), value);
    }
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    match expression::parse(text, &mut names) {
        Err((at, problem)) => format!("{at}: {problem}"),
        Ok(expression) => match evaluate(&expression, &variables, &mut rng) {
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        },
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(computed(text), expected, "{text}");
}

#[test]
fn operators_bind_as_pgbench_has_them() {
    check("1 + 2 * 3", "7");
    check("(1 + 2) * 3", "9");
    check("10 - 4 - 3", "3");
    check("-2 * -3", "6");
    check("- 9223372036854775808", "-9223372036854775808");
    check("7 / 2", "3");
    check("-7 / 2", "-3");
    check("-7 % 3", "-1");
    check("7.0 / 2", "3.5");
    check("1 | 6 & 3", "3");
    check("1 << 4 + 1", "32");
    check("~5", "-6");
    check("6 # 3", "5");
    check("1 < 2 AND NOT 2 < 1 OR NULL", "true");
    check("NOT FALSE = TRUE", "true");
    check("1 + 1 = 2 IS TRUE", "true");
    check(":a * 2 + :text", "26");
    check("2 <> 3 and 2 != 3", "true");
    check("3 >= 3.0", "true");
}

#[test]
fn null_is_neither_true_nor_false() {
    check("NULL + 1", "NULL");
    check("NULL AND FALSE", "false");
    check("NULL AND TRUE", "NULL");
    check("TRUE OR NULL", "true");
    check("NULL IS NULL", "true");
    check("5 NOTNULL", "true");
    check("5 ISNULL", "false");
    check("NULL IS NOT TRUE", "true");
    check("CASE WHEN NULL THEN 1 WHEN 2 > 1 THEN 2 ELSE 3 END", "2");
    check("CASE WHEN FALSE THEN 1 END", "NULL");
    check("abs(NULL)", "NULL");
}

#[test]
fn functions_compute_what_is_documented() {
    check("abs(-17)", "17");
    check("double(5432)", "5432");
    check("exp(1.0)", "2.718281828459045");
    check("greatest(5, 4, 3, 2)", "5");
    check("greatest(5, 4.5)", "5");
    check("least(5, 4, 3, 2.1)", "2.1");
    check("int(5.4 + 3.8)", "9");
    check("mod(54, 32)", "22");
    check("pi()", "3.141592653589793");
    check("power(2.0, 10)", "1024");
    check("sqrt(2.0)", "1.4142135623730951");
    check("ln(2.718281828459045)", "1");
}

#[test]
fn what_cannot_be_computed_says_why() {
    check("1 / 0", "division by zero");
    check("1 % 0", "division by zero");
    check("9223372036854775807 + 1", "the result is out of range for a 64-bit number");
    check("-9223372036854775808 / -1", "the result is out of range for a 64-bit number");
    check("-9223372036854775808 % -1", "0");
    check("abs(-9223372036854775807 - 1)", "the result is out of range for a 64-bit number");
    check("int(1e300)", "the result is out of range for a 64-bit number");
    check(":b", "variable \"b\" was never set");
    check("TRUE + 1", "true is not a number");
    check("1 AND TRUE", "1 is not true or false");
    check("random(2, 1)", "the range of a random number is empty: 2 is above 1");
    check("random_gaussian(1, 9, 1.5)", "the parameter of random_gaussian is at least 2, not 1.5");
    check("random_exponential(1, 9, 0)", "the parameter of random_exponential is above 0, not 0");
    check("random_zipfian(1, 9, 1)", "the parameter of random_zipfian is from 1.001 to 1000, not 1");
    check("permute(1, 0)", "the size of a permutation is above 0, not 0");
}

#[test]
fn what_is_no_expression_says_where() {
    check("1 +", "3: a value was expected here");
    check("(1", "2: `)` was expected here");
    check("1 2", "2: the end of the expression was expected here");
    check("foo(1)", "0: there is no function \"foo\"");
    check("random(1)", "0: random takes 2 arguments, not 1");
    check("permute(1)", "0: permute takes 2 to 3 arguments, not 1");
    check("greatest()", "0: greatest takes 1 argument or more, not 0");
    check("1 < 2 < 3", "6: no second comparison: use AND was expected here");
    check("9223372036854775808", "0: this is not a number of 64 bits");
    check("1 ? 2", "2: '?' has no meaning in an expression");
    check("5x", "0: this is not a number of 64 bits");
    check(&"(".repeat(500), "100: nested more than 100 deep");
    check(&"-".repeat(500), "100: nested more than 100 deep");
}

/// The text of each problem of a script.
fn refused(text: &str) -> String {
    parse("mine", text, &mut Names::default())
        .map_or_else(|error| error.to_string(), |program| format!("accepted: {program:?}"))
}

#[test]
fn a_script_that_cannot_be_read_shows_the_line_with_a_caret() {
    let check = |text: &str, expected: &str| assert_eq!(refused(text), expected, "{text}");
    check(
        "SELECT 1;\n\\set x 1 + foo(2)\n",
        "script mine, line 2: there is no function \"foo\"\n  \\set x 1 + foo(2)\n             ^",
    );
    check(
        "\\sett x 1\nSELECT 1;",
        &format!(
            "{}\n  \\sett x 1\n  ^",
            "script mine, line 1: there is no command \\sett; known are \\set, \\if, \\elif, \\else, \\endif, \\gset, \\aset, \\sleep, \\startpipeline, \\endpipeline"
        ),
    );
    check(
        "SELECT 1;\n\\if 1 > 0\nSELECT 2;",
        "script mine, line 2: this \\if has no \\endif\n  \\if 1 > 0\n  ^",
    );
    check("\\endif\n", "script mine, line 1: \\endif without an \\if before it\n  \\endif\n  ^");
    check(
        "\\if 1\n\\else\n\\else\n",
        "script mine, line 3: \\else behind the \\else of the same \\if\n  \\else\n  ^",
    );
    check("SELECT 'x;\n", "script mine, line 1: this quotation never ends\n  SELECT 'x;\n         ^");
    check(
        "SELECT 1\n\\set x 1\n",
        "script mine, line 2: a statement ends with `;`, \\gset or \\aset before \\set\n  \\set x 1\n  ^",
    );
    check(
        "\\shell rm\n",
        "script mine, line 1: \\shell would run a program on this machine, which a scenario must not do\n  \\shell rm\n  ^",
    );
    check("-- nothing\n", "script mine, line 2: the script has no statement\n  \n  ^");
    check(
        "\\startpipeline\nSELECT 1;",
        "script mine, line 1: this pipeline has no \\endpipeline\n  \\startpipeline\n  ^",
    );
    check(
        "\\sleep 5 minutes\nSELECT 1;",
        "script mine, line 1: a unit: us, ms or s was expected here\n  \\sleep 5 minutes\n         ^",
    );
    check(
        "\\set x 1 + \\\n  * 2\nSELECT 1;",
        "script mine, line 2: a value was expected here\n    * 2\n    ^",
    );
}

fn statements(text: &str) -> Vec<String> {
    parse("mine", text, &mut Names::default()).unwrap_or_else(|error| panic!("{error}")).statements
}

#[test]
fn statements_end_where_sql_has_it_and_variables_become_parameters() {
    let check = |text: &str, expected: &[&str]| assert_eq!(statements(text), expected, "{text}");
    check("SELECT :a, :b, :a;", &["SELECT $1, $2, $1"]);
    check("SELECT 1; SELECT 2", &["SELECT 1", "SELECT 2"]);
    check("SELECT ';', ':a', \":b\" ;", &["SELECT ';', ':a', \":b\""]);
    check("SELECT 'it''s;' ;", &["SELECT 'it''s;'"]);
    check("SELECT E'\\';' ;", &["SELECT E'\\';'"]);
    check("SELECT $$;:a$$, $x$;$$$x$;", &["SELECT $$;:a$$, $x$;$$$x$"]);
    check("SELECT :a::int;", &["SELECT $1::int"]);
    check("SELECT a[1:2];", &["SELECT a[1:2]"]);
    check("SELECT /* ; /* :a */ */ 1; -- ;\nSELECT 2;", &["SELECT /* ; /* :a */ */ 1", "SELECT 2"]);
    check(
        "CREATE RULE r AS ON INSERT TO t DO (DELETE FROM u; DELETE FROM v);",
        &["CREATE RULE r AS ON INSERT TO t DO (DELETE FROM u; DELETE FROM v)"],
    );
    let kept = statements("SELECT 1 AS x \\gset p_\n");
    assert!(kept[0].starts_with("WITH holdfast_answer AS (SELECT 1 AS x)"), "{kept:?}");
}

#[test]
fn a_condition_is_a_query() {
    let check = |query: &str, expected: bool| assert_eq!(super::is_query(query), expected, "{query:?}");
    check("SELECT 1", true);
    check("  -- all of them\n/* twice */ (select a FROM t) -- end", true);
    check("with a AS (SELECT 1) SELECT * FROM a", true);
    check("VALUES (1)", true);
    check("TABLE t", true);
    check("", false);
    check("   ", false);
    check("-- nothing", false);
    check("/* SELECT 1", false);
    check("DELETE FROM pgbench_accounts", false);
    check("selection", false);
    let given = BTreeMap::from([("conditions.gone".to_owned(), "DELETE FROM t".to_owned())]);
    let refused = Scripts::configured(&given).map(drop);
    assert!(refused.is_err_and(|error| error.to_string().contains("conditions.gone")));
}

#[test]
fn conditions_become_jumps_that_lead_into_one_branch() {
    /// The statements that run, for a value of `x`.
    fn taken(text: &str, x: i64) -> Vec<usize> {
        let (mut names, mut variables) = (Names::default(), Variables::default());
        let program = parse("mine", text, &mut names).expect("read");
        variables.set_by_name(&names, "x", Value::Integer(x));
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (mut at, mut found) = (0, Vec::new());
        while let Some((_, step)) = program.steps.get(at) {
            at += 1;
            match step {
                Step::Sql { statement, .. } => found.push(*statement),
                Step::Jump { to } => at = *to,
                Step::Unless { condition, to } => {
                    let truth =
                        evaluate(condition, &variables, &mut rng).expect("value").truth().expect("truth");
                    at = if truth { at } else { *to };
                }
                other => panic!("{other:?}"),
            }
        }
        found
    }
    let text = "\\if :x = 1\nSELECT 0;\n\\if FALSE\nSELECT 1;\n\\endif\n\\elif :x = 2\nSELECT 2;\n\\else\nSELECT 3;\n\
                \\if TRUE\nSELECT 4;\n\\else\nSELECT 5;\n\\endif\n\\endif\nSELECT 6;";
    assert_eq!(taken(text, 1), [0, 6]);
    assert_eq!(taken(text, 2), [2, 6]);
    assert_eq!(taken(text, 3), [3, 4, 6]);
}

/// Draws of an expression follow `expected`, the shares of `lowest`, `lowest + 1` ...
#[track_caller]
fn follows(text: &str, lowest: i64, expected: &[f64]) {
    let expression = expression::parse(text, &mut Names::default()).expect("an expression");
    let variables = Variables::default();
    chi_square::check(text, expected, 60_000, |rng| {
        let value = evaluate(&expression, &variables, rng).expect("a value").integer().expect("whole");
        usize::try_from(value - lowest).expect("in range")
    });
}

/// The standard normal distribution below x.
fn normal_below(x: f64) -> f64 {
    // Abramowitz and Stegun 7.1.26 is not exact enough; the series is.
    let (mut term, mut sum, mut k) = (x, x, 1.0);
    while f64::abs(term) > 1e-15 {
        term *= -x * x / (2.0 * k);
        sum += term / (2.0 * k + 1.0);
        k += 1.0;
    }
    0.5 + sum / std::f64::consts::TAU.sqrt()
}

#[test]
fn random_numbers_follow_the_documented_distributions() {
    follows("random(-3, 6)", -3, &[0.1; 10]);
    let exponential = |width: usize, parameter: f64| -> Vec<f64> {
        let at = |i: f64| (-parameter * i / width as f64).exp();
        (0..width).map(|i| (at(i as f64) - at(i as f64 + 1.0)) / (1.0 - (-parameter).exp())).collect()
    };
    follows("random_exponential(5, 24, 2.5)", 5, &exponential(20, 2.5));
    let gaussian = |width: usize, parameter: f64| -> Vec<f64> {
        let at = |i: f64| normal_below(2.0 * parameter * i / width as f64 - parameter);
        let all = 2.0 * normal_below(parameter) - 1.0;
        (0..width).map(|i| (at(i as f64 + 1.0) - at(i as f64)) / all).collect()
    };
    follows("random_gaussian(1, 20, 3.0)", 1, &gaussian(20, 3.0));
    let weights: Vec<f64> = (1..=20).map(|k| f64::from(k).powf(-1.5)).collect();
    let zipf: Vec<f64> = weights.iter().map(|weight| weight / weights.iter().sum::<f64>()).collect();
    follows("random_zipfian(1, 20, 1.5)", 1, &zipf);
    // The widest range there is does not overflow.
    check("random(-9223372036854775808, 9223372036854775807) IS NULL", "false");
}

#[test]
fn permute_gives_every_number_once_and_another_order_for_another_seed() {
    let order = |size: i64, seed: i64| -> Vec<String> {
        (0..size).map(|number| computed(&format!("permute({number}, {size}, {seed})"))).collect()
    };
    for size in [1, 2, 7, 64, 100] {
        let seen: BTreeSet<String> = order(size, 1).into_iter().collect();
        let all: BTreeSet<String> = (0..size).map(|number| number.to_string()).collect();
        assert_eq!(seen, all);
    }
    assert_ne!(order(100, 1), order(100, 2));
    assert_eq!(
        computed("permute(7, 100)"),
        computed("permute(7, 100, 5)"),
        "the default seed is the variable's"
    );
}

fn configured(options: &[(&str, &str)]) -> Result<Scripts, String> {
    let given: BTreeMap<String, String> =
        options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Scripts::configured(&given).map_err(|error| error.to_string())
}

#[test]
fn scripts_are_chosen_by_weight_and_named() {
    let scripts = configured(&[
        ("scripts.0.builtin", "select-only"),
        ("scripts.0.weight", "3"),
        ("scripts.1.text", "SELECT 1;"),
        ("conditions.none", "SELECT 1 WHERE false"),
    ])
    .expect("fits");
    assert_eq!(scripts.kinds(), ["select-only", "script-2"]);
    let mut client = ClientState::new(1, 1, ChaCha8Rng::seed_from_u64(1));
    chi_square::check("weights", &[0.75, 0.25], 10_000, |_| scripts.draw(&mut client).kind);
    let conditions: Vec<&str> = scripts.conditions.iter().map(|condition| condition.0.as_str()).collect();
    assert_eq!(conditions, ["accounts-add-up", "none"]);
}

#[test]
fn statements_are_named_by_their_first_words_without_commas() {
    let text = "INSERT INTO notes (a, b) VALUES (:a, 'x');\nSELECT max(a), min(a) FROM notes \\gset\n";
    let scripts = configured(&[("scripts.0.text", text)]).expect("fits");
    let expected = ["script-1 1: INSERT INTO notes a", "script-1 2: SELECT max a min"];
    assert_eq!(scripts.statement_names(), expected);
}

#[test]
fn options_that_cannot_be_are_refused() {
    let check = |options: &[(&str, &str)], expected: &str| {
        let told = configured(options).err().expect("refused");
        assert!(told.contains(expected), "{told}");
    };
    check(&[("scripts.0.builtin", "tpcc")], "tpcb-like, simple-update, select-only");
    check(&[("scripts.0.text", "SELECT 1;"), ("scripts.0.builtin", "select-only")], "its own text");
    check(&[("scripts.0.builtin", "select-only"), ("scripts.1.builtin", "select-only")], "the same name");
    check(&[("scripts.0.text", "\\foo\n")], "line 1: there is no command \\foo");
    check(&[("scripts.0.text", "SELECT 1;"), ("scripts.0.name", "a, b")], "names are made of");
    check(&[("scripts.1.text", "SELECT 1;")], "the first script needs `scripts.0.text`");
    check(
        &[("scripts.0.text", "SELECT 1;"), ("scripts.2.text", "SELECT 1;")],
        "no option \"scripts.2.text\"",
    );
}

proptest::proptest! {
    #[test]
    fn no_text_makes_reading_panic(text in "[\\\\:;'\"$a-z0-9 ()/*\n+-]{0,80}", commands in "(\\\\(set|if|elif|else|endif|sleep|gset) ?[:a-z0-9 +(\\\\]{0,12}\n){0,6}") {
        let _ = parse("any", &text, &mut Names::default());
        let _ = parse("any", &format!("{commands}{text}"), &mut Names::default());
        let _ = expression::parse(&text, &mut Names::default());
    }
}

/// A script of this length must neither end the program nor keep anybody waiting; the threads of loads have stacks of
/// 2 MiB.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(work).expect("a thread");
    thread.join().expect("it ended well");
}

#[test]
fn an_expression_of_200_000_terms_is_read_computed_and_dropped() {
    on_a_small_stack(|| {
        check(&vec!["1"; 200_000].join("+"), "200000");
        check(&format!("1{}", " + 2 * 3 - 5".repeat(100_000)), "100001");
        check(&format!("NULL{}", " IS NULL".repeat(100_000)), "false");
        check(&vec!["FALSE"; 100_000].join(" OR "), "false");
        check(&vec!["1.5"; 100_000].join(" + "), "150000");
    });
}

#[test]
fn ifs_may_stand_within_each_other_100_deep_and_no_deeper() {
    on_a_small_stack(|| {
        let nested =
            |depth: usize| format!("{}SELECT 1;\n{}", "\\if 1\n".repeat(depth), "\\endif\n".repeat(depth));
        assert_eq!(parse("mine", &nested(100), &mut Names::default()).expect("read").steps.len(), 101);
        let expected = "script mine, line 101: nested more than 100 deep\n  \\if 1\n  ^";
        assert_eq!(refused(&nested(101)), expected);
        assert_eq!(refused(&nested(100_000)), expected);
    });
}

#[test]
fn a_long_script_takes_time_in_proportion_to_its_length() {
    // 200,000 statements, 60,000 variables: with a search from the start for each, this ran for minutes.
    let statements = "A;\n".repeat(200_000);
    assert_eq!(
        parse("mine", &statements, &mut Names::default()).expect("read").steps.last().expect("steps").0,
        200_000
    );
    let many: Vec<String> = (0..60_000).map(|number| format!(":v{number}")).collect();
    let program = parse("mine", &format!("SELECT {};", many.join(",")), &mut Names::default()).expect("read");
    assert!(program.statements[0].ends_with(",$60000"), "{}", program.statements[0].len());
    let too_many: Vec<String> = (0..66_000).map(|number| format!(":v{number}")).collect();
    assert!(refused(&format!("SELECT {};", too_many.join(","))).contains("can have 65535 variables at most"));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused_at_a_place_within_it(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "\\set x ", "\\if ", "\\elif 1\n", "\\else\n", "\\endif\n", "\\gset\n", "\\sleep 1 ms\n", "SELECT ", ":x",
                ";", "\n", "(", ")", "1", "+", "-", "NOT ", "IS NULL", "CASE WHEN ", " END", "random(1, 2)", "'", "$$",
                "/*", "*/", "--", "é", "\u{202e}", "\0",
            ]),
            0..40,
        )
    ) {
        let text: String = parts.concat();
        if let Err(error) = parse("mine", &text, &mut Names::default()) {
            proptest::prop_assert!(error.line <= text.matches('\n').count() + 1);
            proptest::prop_assert!(!error.to_string().is_empty());
        }
    }
}
