//! Expressions of `\set` and `\if`: from text to a tree, with pgbench's operators and their precedence.
//!
//! Source: the section "Built-In Operators" of PostgreSQL's documentation of pgbench. Owns syntax; names of functions and
//! how many arguments each takes are checked against `functions`.

use super::functions::Function;
use super::value::Value;
use super::variables::{Names, Variable};
use crate::script_error::Problem;

/// Deepest nesting, of brackets, signs and `\if`; a script is typed by a person.
pub(super) const MOST_DEPTH: usize = 100;

/// An operator of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Or,
    And,
    Less,
    AtMost,
    Equal,
    Unequal,
    Greater,
    AtLeast,
    BitOr,
    BitXor,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// What `IS` compares with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    True,
    False,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Constant(Value),
    Variable(Variable),
    Not(Box<Expression>),
    Negate(Box<Expression>),
    Invert(Box<Expression>),
    /// A first operand and all that follows it, computed from left to right. Flat, so that a long sum is a long list and
    /// no deep tree: whatever is computed, compared or dropped recursively is at most [`MOST_DEPTH`] deep.
    Chain {
        first: Box<Expression>,
        links: Vec<Link>,
    },
    Case {
        branches: Vec<(Expression, Expression)>,
        otherwise: Box<Expression>,
    },
    Call {
        function: Function,
        arguments: Vec<Expression>,
    },
}

/// What is done with the value so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Link {
    Binary { operator: Binary, right: Expression },
    Is { kind: Kind, negated: bool },
}

/// A word of an expression and where it begins.
#[derive(Debug, Clone, PartialEq)]
struct Token {
    what: What,
    at: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum What {
    Integer(i64),
    /// The one integer that only exists with a minus before it.
    TooLargeByOne,
    Double(f64),
    Variable(String),
    Word(String),
    Symbol(&'static str),
    End,
}

/// Symbols, the longer ones first.
const SYMBOLS: [&str; 21] = [
    "<=", ">=", "<>", "!=", "<<", ">>", "(", ")", ",", "<", ">", "=", "|", "#", "&", "~", "+", "-", "*", "/",
    "%",
];

/// Reads a whole expression; variables that it mentions get a place among `names`. A problem comes with the byte it is
/// found at.
pub(super) fn parse(text: &str, names: &mut Names) -> Result<Expression, (usize, Problem)> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0, names };
    let expression = parser.expression(0)?;
    match parser.peek().what {
        What::End => Ok(expression),
        _ => Err((parser.peek().at, Problem::Unexpected("the end of the expression".to_owned()))),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, (usize, Problem)> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let length_of =
            |rest: &str, fits: &dyn Fn(char) -> bool| rest.find(|c| !fits(c)).unwrap_or(rest.len());
        let (what, length) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first.is_ascii_digit()
            || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()))
        {
            number(rest).ok_or((at, Problem::BadNumber))?
        } else if first == ':' {
            let length = length_of(&rest[1..], &is_name);
            if length == 0 {
                return Err((at, Problem::Unexpected("a variable's name behind the colon".to_owned())));
            }
            (What::Variable(rest[1..=length].to_owned()), length + 1)
        } else if is_name(first) {
            let length = length_of(rest, &is_name);
            (What::Word(rest[..length].to_ascii_lowercase()), length)
        } else {
            let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
            let symbol = symbol.ok_or((at, Problem::UnknownCharacter(first)))?;
            (What::Symbol(symbol), symbol.len())
        };
        tokens.push(Token { what, at });
        at += length;
    }
    tokens.push(Token { what: What::End, at: text.len() });
    Ok(tokens)
}

/// A number at the front, and its length.
fn number(rest: &str) -> Option<(What, usize)> {
    let digits = |from: usize| rest[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(0);
    let mut is_double = false;
    if rest[length..].starts_with('.') {
        is_double = true;
        length += 1 + digits(length + 1);
    }
    if rest[length..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            is_double = true;
            length += 1 + sign + exponent;
        }
    }
    if rest[length..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let text = &rest[..length];
    let what = if is_double {
        What::Double(text.parse().ok()?)
    } else if text == "9223372036854775808" {
        What::TooLargeByOne
    } else {
        What::Integer(text.parse().ok()?)
    };
    Some((what, length))
}

struct Parser<'n> {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    names: &'n mut Names,
}

/// How tightly operators bind; `IS` and `NOT` stand between.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARE: u8 = 5;
const BITS: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;

impl Parser<'_> {
    fn peek(&self) -> &Token {
        // The last token is the end, and nobody takes it.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        if token.what != What::End {
            self.next += 1;
        }
        token
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.peek().what, What::Word(found) if found == word)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.next += usize::from(found);
        found
    }

    fn expect_word(&mut self, word: &str) -> Result<(), (usize, Problem)> {
        if self.take_word(word) {
            return Ok(());
        }
        Err((self.peek().at, Problem::Unexpected(word.to_ascii_uppercase())))
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek().what, What::Symbol(found) if found == symbol);
        self.next += usize::from(found);
        found
    }

    /// The binary operator that comes next, and how tightly it binds.
    fn operator(&self) -> Option<(Binary, u8)> {
        Some(match &self.peek().what {
            What::Word(word) if word == "or" => (Binary::Or, OR),
            What::Word(word) if word == "and" => (Binary::And, AND),
            What::Symbol(symbol) => match *symbol {
                "<" => (Binary::Less, COMPARE),
                "<=" => (Binary::AtMost, COMPARE),
                "=" => (Binary::Equal, COMPARE),
                "<>" | "!=" => (Binary::Unequal, COMPARE),
                ">" => (Binary::Greater, COMPARE),
                ">=" => (Binary::AtLeast, COMPARE),
                "|" => (Binary::BitOr, BITS),
                "#" => (Binary::BitXor, BITS),
                "&" => (Binary::BitAnd, BITS),
                "<<" => (Binary::ShiftLeft, BITS),
                ">>" => (Binary::ShiftRight, BITS),
                "+" => (Binary::Add, SUM),
                "-" => (Binary::Subtract, SUM),
                "*" => (Binary::Multiply, PRODUCT),
                "/" => (Binary::Divide, PRODUCT),
                "%" => (Binary::Remainder, PRODUCT),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// An expression whose operators bind at least so tightly.
    fn expression(&mut self, least: u8) -> Result<Expression, (usize, Problem)> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err((self.peek().at, Problem::TooDeep(MOST_DEPTH)));
        }
        let first = if least <= NOT && self.take_word("not") {
            Expression::Not(Box::new(self.expression(NOT)?))
        } else {
            self.operand()?
        };
        let mut links = Vec::new();
        loop {
            if least <= IS
                && let Some((kind, negated)) = self.is_clause()?
            {
                links.push(Link::Is { kind, negated });
                continue;
            }
            let Some((operator, binds)) = self.operator().filter(|(_, binds)| *binds >= least) else { break };
            self.next += 1;
            let right = self.expression(binds + 1)?;
            links.push(Link::Binary { operator, right });
            if binds == COMPARE && self.operator().is_some_and(|(_, binds)| binds == COMPARE) {
                return Err((
                    self.peek().at,
                    Problem::Unexpected("no second comparison: use AND".to_owned()),
                ));
            }
        }
        self.depth -= 1;
        Ok(if links.is_empty() { first } else { Expression::Chain { first: Box::new(first), links } })
    }

    fn is_clause(&mut self) -> Result<Option<(Kind, bool)>, (usize, Problem)> {
        if self.take_word("isnull") {
            return Ok(Some((Kind::Null, false)));
        }
        if self.take_word("notnull") {
            return Ok(Some((Kind::Null, true)));
        }
        if !self.take_word("is") {
            return Ok(None);
        }
        let negated = self.take_word("not");
        let kinds = [("null", Kind::Null), ("true", Kind::True), ("false", Kind::False)];
        match kinds.into_iter().find(|(word, _)| self.is_word(word)) {
            Some((_, kind)) => {
                self.next += 1;
                Ok(Some((kind, negated)))
            }
            None => Err((self.peek().at, Problem::Unexpected("NULL, TRUE or FALSE".to_owned()))),
        }
    }

    fn operand(&mut self) -> Result<Expression, (usize, Problem)> {
        let token = self.take();
        match token.what {
            What::Integer(number) => Ok(Expression::Constant(Value::Integer(number))),
            What::Double(number) => Ok(Expression::Constant(Value::Double(number))),
            What::Variable(name) => Ok(Expression::Variable(self.names.variable(&name))),
            What::Symbol("(") => {
                let inner = self.expression(0)?;
                self.close()?;
                Ok(inner)
            }
            What::Symbol("-") if self.peek().what == What::TooLargeByOne => {
                self.next += 1;
                Ok(Expression::Constant(Value::Integer(i64::MIN)))
            }
            What::Symbol("-") => Ok(Expression::Negate(Box::new(self.unary()?))),
            What::Symbol("+") => self.unary(),
            What::Symbol("~") => Ok(Expression::Invert(Box::new(self.unary()?))),
            What::Word(word) => self.word(&word, token.at),
            What::TooLargeByOne => Err((token.at, Problem::BadNumber)),
            What::Symbol(_) | What::End => Err((token.at, Problem::Unexpected("a value".to_owned()))),
        }
    }

    /// What a sign stands before: one operand, however deep.
    fn unary(&mut self) -> Result<Expression, (usize, Problem)> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err((self.peek().at, Problem::TooDeep(MOST_DEPTH)));
        }
        let operand = self.operand();
        self.depth -= 1;
        operand
    }

    fn close(&mut self) -> Result<(), (usize, Problem)> {
        if self.take_symbol(")") {
            Ok(())
        } else {
            Err((self.peek().at, Problem::Unexpected("`)`".to_owned())))
        }
    }

    fn word(&mut self, word: &str, at: usize) -> Result<Expression, (usize, Problem)> {
        match word {
            "true" => return Ok(Expression::Constant(Value::Boolean(true))),
            "false" => return Ok(Expression::Constant(Value::Boolean(false))),
            "null" => return Ok(Expression::Constant(Value::Null)),
            "case" => return self.case(),
            _ => {}
        }
        let function =
            Function::named(word).ok_or_else(|| (at, Problem::UnknownFunction(word.to_owned())))?;
        if !self.take_symbol("(") {
            return Err((self.peek().at, Problem::Unexpected("`(`".to_owned())));
        }
        let mut arguments = Vec::new();
        if !self.take_symbol(")") {
            loop {
                arguments.push(self.expression(0)?);
                if !self.take_symbol(",") {
                    break;
                }
            }
            self.close()?;
        }
        if function.arguments().contains(&arguments.len()) {
            return Ok(Expression::Call { function, arguments });
        }
        let (least, most) = (*function.arguments().start(), *function.arguments().end());
        Err((at, Problem::ArgumentCount { function: word.to_owned(), least, most, given: arguments.len() }))
    }

    fn case(&mut self) -> Result<Expression, (usize, Problem)> {
        let mut branches = Vec::new();
        while self.take_word("when") {
            let condition = self.expression(0)?;
            self.expect_word("then")?;
            branches.push((condition, self.expression(0)?));
        }
        if branches.is_empty() {
            return Err((self.peek().at, Problem::Unexpected("WHEN".to_owned())));
        }
        let otherwise =
            if self.take_word("else") { self.expression(0)? } else { Expression::Constant(Value::Null) };
        self.expect_word("end")?;
        Ok(Expression::Case { branches, otherwise: Box::new(otherwise) })
    }
}
