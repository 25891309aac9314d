//! Predicates in Spark's SQL (time zone UTC) as DataFusion's.
//!
//! What is left as it is means the same in both.

use arrow_schema::{DataType, Schema};

/// One predicate in DataFusion's SQL, in each way that a user may write it: literals bare, and with their exact types.
pub(super) fn translations(spark: &str, schema: &Schema) -> Vec<String> {
    let tokens = tokens(spark);
    let writer = |exact| Writer {
        tokens: &tokens,
        schema,
        exact,
    };
    let mut both = vec![writer(true).write(), writer(false).write()];
    both.dedup();
    both
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    /// An identifier between backticks.
    Quoted(String),
    /// A string literal, its escapes resolved.
    Text(String),
    Number(String),
    Space,
    Symbol(String),
}

fn tokens(sql: &str) -> Vec<Token> {
    let mut rest = sql;
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '\'' => {
                let length = quoted_length(rest, '\'');
                (Token::Text(unescape(&rest[1..length - 1])), length)
            }
            '`' => {
                let length = quoted_length(rest, '`');
                (
                    Token::Quoted(rest[1..length - 1].replace("``", "`")),
                    length,
                )
            }
            ' ' => (Token::Space, 1),
            _ if first.is_alphabetic() || first == '_' => {
                let length = length_of(rest, |c| c.is_alphanumeric() || c == '_');
                (Token::Word(rest[..length].to_owned()), length)
            }
            _ if first.is_ascii_digit() => {
                let length = length_of(rest, |c| c.is_ascii_digit() || c == '.');
                (Token::Number(rest[..length].to_owned()), length)
            }
            _ => {
                let length = ["<=>", "<>", "<=", ">="]
                    .iter()
                    .find(|symbol| rest.starts_with(**symbol))
                    .map_or(first.len_utf8(), |symbol| symbol.len());
                (Token::Symbol(rest[..length].to_owned()), length)
            }
        };
        tokens.push(token);
        rest = &rest[length..];
    }
    tokens
}

fn length_of(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// Bytes up to and with the closing quote; a doubled one does not close.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            continue;
        }
        match chars.peek() {
            Some((_, next)) if *next == quote => {
                chars.next();
            }
            _ => return at + 1,
        }
    }
    panic!("no closing {quote} in {text}")
}

/// Spark reads `\uXXXX` in a string literal.
fn unescape(literal: &str) -> String {
    let mut parts = literal.split("\\u");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = u32::from_str_radix(&part[..4], 16).unwrap();
        text.push(char::from_u32(code).unwrap());
        text.push_str(&part[4..]);
    }
    text.replace("''", "'")
}

struct Writer<'a> {
    tokens: &'a [Token],
    schema: &'a Schema,
    exact: bool,
}

impl Writer<'_> {
    fn write(&self) -> String {
        let mut sql = String::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let (text, taken) = self.piece(at);
            sql.push_str(&text);
            at += taken;
        }
        sql
    }

    /// The SQL of what begins here, and how many tokens that is.
    fn piece(&self, at: usize) -> (String, usize) {
        use Token::{Number, Quoted, Space, Symbol, Text, Word};
        let symbol = |text: &str| Symbol(text.to_owned());
        match &self.tokens[at..] {
            [Word(word), Text(text), ..] => (typed_literal(word, text, self.exact), 2),
            [Word(word), open, Text(text), close, ..]
                if matches!(word.as_str(), "double" | "float")
                    && *open == symbol("(")
                    && *close == symbol(")") =>
            {
                let kind = if word == "float" { "REAL" } else { "DOUBLE" };
                (format!("CAST('{text}' AS {kind})"), 4)
            }
            // Not the function: Spark's is false of NULL.
            [Word(word), open, Word(column), close, ..]
                if word == "isnan" && *open == symbol("(") && *close == symbol(")") =>
            {
                let sql = format!("({column} IS NOT DISTINCT FROM CAST('NaN' AS DOUBLE))");
                (sql, 4)
            }
            // Of lists in lists, `cardinality` counts the innermost items.
            [Word(word), open, Word(column), ..] if word == "size" && *open == symbol("(") => {
                let is_map = matches!(self.type_of(column), Some(DataType::Map(..)));
                let function = if is_map {
                    "cardinality"
                } else {
                    "array_length"
                };
                (format!("{function}("), 2)
            }
            [Word(word), open, ..] if word == "year" && *open == symbol("(") => {
                ("date_part('year', ".to_owned(), 2)
            }
            [dot, Word(field), ..] if *dot == symbol(".") => (self.field(field, at), 2),
            // The operator takes all that follows for its right side.
            [Word(left), Space, operator, Space, Word(right), ..] if *operator == symbol("<=>") => {
                (format!("({left} IS NOT DISTINCT FROM {right})"), 5)
            }
            // Spark casts by itself.
            [Word(column), Space, Word(like), ..] if like == "like" && self.is_float(column) => {
                (format!("CAST({column} AS VARCHAR)"), 1)
            }
            [open, Number(index), close, ..] if *open == symbol("[") && *close == symbol("]") => {
                (format!("[{}]", index.parse::<u32>().unwrap() + 1), 3)
            }
            [Symbol(text), ..] => (text.clone(), 1),
            [Word(word), ..] => (word.clone(), 1),
            [Quoted(name), ..] => (identifier(name), 1),
            [Text(text), ..] => (self.text(text), 1),
            [Number(number), ..] => (self.number(number, at), 1),
            [Space, ..] => (" ".to_owned(), 1),
            [] => unreachable!("pieces begin at a token"),
        }
    }

    /// A field of a struct; it may have the name of a keyword, and after an index DataFusion knows brackets alone.
    fn field(&self, name: &str, at: usize) -> String {
        let path = self.tokens[..at].iter().rev();
        let mut path = path.take_while(|token| !matches!(token, Token::Space));
        if path.any(|token| *token == Token::Symbol("[".to_owned())) {
            format!("[{}]", literal(name))
        } else {
            format!(".{}", identifier(name))
        }
    }

    fn type_of(&self, column: &str) -> Option<&DataType> {
        let field = self.schema.field_with_name(column);
        field.ok().map(|field| field.data_type())
    }

    fn is_float(&self, column: &str) -> bool {
        self.type_of(column).is_some_and(DataType::is_floating)
    }

    fn text(&self, text: &str) -> String {
        let is_uuid = |kind: &DataType| *kind == DataType::FixedSizeBinary(16);
        let has_uuids = self
            .schema
            .fields()
            .iter()
            .any(|field| is_uuid(field.data_type()));
        match uuid::Uuid::parse_str(text) {
            Ok(uuid) if has_uuids => format!("X'{}'", uuid.simple()),
            _ => literal(text),
        }
    }

    /// A number that is compared with a decimal column may not go through a floating-point one.
    fn number(&self, number: &str, at: usize) -> String {
        let digits = number.bytes().filter(u8::is_ascii_digit).count();
        let survives_a_float = digits <= 15;
        let is_integer = !number.contains('.') && digits < 19;
        if is_integer || !self.is_of_a_decimal(at) || (survives_a_float && !self.exact) {
            return number.to_owned();
        }
        let scale = number
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.len());
        format!("CAST('{number}' AS DECIMAL(38, {scale}))")
    }

    /// Whether the column named last before this token is a decimal.
    fn is_of_a_decimal(&self, at: usize) -> bool {
        let column = self.tokens[..at]
            .iter()
            .rev()
            .find_map(|token| match token {
                Token::Word(word) => self.schema.field_with_name(word).ok(),
                _ => None,
            });
        column.is_some_and(|field| matches!(field.data_type(), DataType::Decimal128(..)))
    }
}

fn typed_literal(word: &str, text: &str, exact: bool) -> String {
    match word {
        "x" => format!("X'{text}'"),
        "date" => format!("DATE '{text}'"),
        // DataFusion compares a TIME, in nanoseconds, with no other unit.
        "time" if exact => format!("arrow_cast('{text}', 'Time64(Microsecond)')"),
        "time" => literal(text),
        // DataFusion's TIMESTAMP has nanoseconds, and no more years than fit.
        "timestamp" | "timestamp_ntz" if !("1700".."2200").contains(&&text[..4]) => {
            let zone = if word == "timestamp" {
                "Some(\"UTC\")"
            } else {
                "None"
            };
            format!("arrow_cast('{text}', 'Timestamp(Microsecond, {zone})')")
        }
        "timestamp" | "timestamp_ntz" if exact => format!("TIMESTAMP '{text}'"),
        "timestamp" | "timestamp_ntz" => literal(text),
        other => panic!("{other}'{text}' is no literal that is known here"),
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use arrow_schema::Field;

    use super::*;

    fn translate(spark: &str) -> Vec<String> {
        let columns = [
            ("c", DataType::Decimal128(12, 3)),
            ("u", DataType::FixedSizeBinary(16)),
            ("v", DataType::Float64),
        ];
        let fields: Vec<_> = columns
            .map(|(name, kind)| Field::new(name, kind, true))
            .into();
        translations(spark, &Schema::new(fields))
    }

    #[test]
    fn what_both_write_alike_stays() {
        for same in [
            "s like 'a%' and k not in (1, 2)",
            "not (s is null or v > 20.5)",
            "s = 'it''s é'",
            "i <> -2147483648",
            "c > 3",
        ] {
            assert_eq!(translate(same), [same]);
        }
    }

    #[test]
    fn what_spark_writes_its_own_way_is_translated() {
        for (spark, ours) in [
            ("v = double('NaN')", "v = CAST('NaN' AS DOUBLE)"),
            (
                "not isnan(v)",
                "not (v IS NOT DISTINCT FROM CAST('NaN' AS DOUBLE))",
            ),
            (
                "s <=> null or i = 7",
                "(s IS NOT DISTINCT FROM null) or i = 7",
            ),
            ("size(l) = 0", "array_length(l) = 0"),
            ("ds.a.b[0][2].x > 1", "ds.\"a\".\"b\"[1][3]['x'] > 1"),
            ("v like 'a%'", "CAST(v AS VARCHAR) like 'a%'"),
            ("m['k1'] is null", "m['k1'] is null"),
            ("st.in.x = 1", "st.\"in\".\"x\" = 1"),
            ("year(d) = 1969", "date_part('year', d) = 1969"),
            ("b = x'00ff'", "b = X'00ff'"),
            ("s > '\\u00fe'", "s > 'þ'"),
            ("`a b``c` = 1", "\"a b`c\" = 1"),
            ("d < date'1000-01-01'", "d < DATE '1000-01-01'"),
            (
                "ts = timestamp'9999-12-31 00:00:00'",
                "ts = arrow_cast('9999-12-31 00:00:00', 'Timestamp(Microsecond, Some(\"UTC\"))')",
            ),
            (
                "u = '350c80b6-ac08-44b5-44be-1ffba4f4efa5'",
                "u = X'350c80b6ac0844b544be1ffba4f4efa5'",
            ),
        ] {
            assert_eq!(translate(spark), [ours]);
        }
    }

    #[test]
    fn literals_with_a_type_are_written_with_it_and_without() {
        assert_eq!(
            translate("c = -10.5"),
            ["c = -CAST('10.5' AS DECIMAL(38, 1))", "c = -10.5"]
        );
        assert_eq!(
            translate("t < timestamp_ntz'1970-01-01 00:00:00'"),
            [
                "t < TIMESTAMP '1970-01-01 00:00:00'",
                "t < '1970-01-01 00:00:00'"
            ]
        );
        assert_eq!(
            translate("t = time'12:00:00'"),
            [
                "t = arrow_cast('12:00:00', 'Time64(Microsecond)')",
                "t = '12:00:00'"
            ]
        );
        assert_eq!(
            translate("c > 9999999999999999999999999999"),
            ["c > CAST('9999999999999999999999999999' AS DECIMAL(38, 0))"]
        );
    }
}
