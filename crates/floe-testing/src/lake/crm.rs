//! `crm.*`: six tables that know the same customers, each by `customer_id`. Later work erases people from them.
//! Customer [`KNOWN_CUSTOMER`] is in all six, whatever the lake's size.

use std::sync::Arc;

use anyhow::Result;

use super::columns::Columns;
use super::plan::Plan;
use super::random::{Random, rounded};

/// A customer that is in every table.
pub const KNOWN_CUSTOMER: i64 = 48_211;

/// Ids of a lake of the default size; a smaller one has some of them, evenly spread.
const FIRST_CUSTOMER: u64 = 10_000;
const CUSTOMERS: u64 = 60_000;
const COMMITS: usize = 4;
const SEED: u64 = 20_250_117;
const DAY_US: i64 = 24 * 3600 * 1_000_000;
/// 2024-01-01T00:00:00Z.
const START_US: i64 = 1_704_067_200_000_000;
const YEAR_US: i64 = 365 * DAY_US;

const FIRST_NAMES: [&str; 16] = [
    "Ada", "Bela", "Carla", "Deniz", "Emil", "Finn", "Greta", "Hana", "Ivo", "Jana", "Karim",
    "Lena", "Mateo", "Nora", "Olga", "Pavel",
];
const LAST_NAMES: [&str; 16] = [
    "Arslan",
    "Berg",
    "Costa",
    "Dubois",
    "Eriksen",
    "Fischer",
    "Greco",
    "Horvat",
    "Ivanova",
    "Jansen",
    "Kowalski",
    "Lindqvist",
    "Moreau",
    "Novak",
    "Okafor",
    "Petrov",
];
const CITIES: [&str; 10] = [
    "Aarhus", "Bologna", "Brno", "Ghent", "Graz", "Köln", "Łódź", "Málaga", "Nantes", "Utrecht",
];
const COUNTRIES: [&str; 10] = ["DK", "IT", "CZ", "BE", "AT", "DE", "PL", "ES", "FR", "NL"];
const PAGES: [&str; 8] = [
    "/",
    "/search",
    "/product",
    "/cart",
    "/checkout",
    "/account",
    "/help",
    "/offers",
];

/// Files at the default size, rows at the default size, and how a file's rows are made.
struct Shape {
    name: &'static str,
    files: usize,
    rows: u64,
    columns: fn(&mut Slice) -> Result<Columns>,
}

const SHAPES: [Shape; 6] = [
    Shape {
        name: "customers",
        files: 40,
        rows: CUSTOMERS,
        columns: customers,
    },
    Shape {
        name: "orders",
        files: 48,
        rows: 240_000,
        columns: orders,
    },
    Shape {
        name: "payments",
        files: 48,
        rows: 240_000,
        columns: payments,
    },
    Shape {
        name: "tickets",
        files: 40,
        rows: 48_000,
        columns: tickets,
    },
    Shape {
        name: "profile",
        files: 40,
        rows: CUSTOMERS,
        columns: profile,
    },
    Shape {
        name: "events",
        files: 60,
        rows: 600_000,
        columns: events,
    },
];

/// The six tables of a lake of this size, relative to the default one.
pub(super) fn tables(scale: f64) -> Vec<Arc<dyn Plan>> {
    let people = People {
        count: ((CUSTOMERS as f64 * scale) as u64).max(COMMITS as u64),
    };
    SHAPES
        .into_iter()
        .map(|shape| {
            let files = ((shape.files as f64 * scale).round() as usize).max(COMMITS);
            let rows = match shape.rows {
                CUSTOMERS => people.count,
                rows => ((rows as f64 * scale) as u64).max(files as u64),
            };
            let files = files.min(rows as usize);
            Arc::new(Table {
                shape,
                people,
                files,
                rows,
            }) as Arc<dyn Plan>
        })
        .collect()
}

/// Who the customers are.
#[derive(Clone, Copy)]
struct People {
    count: u64,
}

impl People {
    /// Rising with the place; one of them is the known customer.
    fn id(&self, place: u64) -> i64 {
        let spread = |place: u64| {
            if self.count >= CUSTOMERS {
                FIRST_CUSTOMER + place
            } else {
                FIRST_CUSTOMER + place * CUSTOMERS / self.count
            }
        };
        let known = KNOWN_CUSTOMER as u64;
        if spread(place) <= known && known < spread(place + 1) {
            return KNOWN_CUSTOMER;
        }
        spread(place) as i64
    }
}

struct Table {
    shape: Shape,
    people: People,
    files: usize,
    rows: u64,
}

impl Plan for Table {
    fn namespace(&self) -> &str {
        "crm"
    }

    fn name(&self) -> &str {
        self.shape.name
    }

    fn files(&self) -> usize {
        self.files
    }

    fn files_per_commit(&self) -> usize {
        self.files.div_ceil(COMMITS)
    }

    fn columns(&self, file: usize) -> Result<Columns> {
        let (file, files) = (file as u64, self.files as u64);
        let part = self.shape.name.bytes().fold(file << 32, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let mut slice = Slice {
            people: self.people,
            random: Random::new(SEED, part),
            first: file * self.rows / files,
            end: (file + 1) * self.rows / files,
            span_us: YEAR_US / files as i64,
            start_us: START_US + file as i64 * (YEAR_US / files as i64),
            known_first: file == 0 || file % 7 == 3,
        };
        (self.shape.columns)(&mut slice)
    }
}

/// The rows of one file: a stretch of the table's rows, and of the year.
struct Slice {
    people: People,
    random: Random,
    first: u64,
    end: u64,
    start_us: i64,
    span_us: i64,
    /// Whether the first row is the known customer's.
    known_first: bool,
}

impl Slice {
    fn len(&self) -> usize {
        (self.end - self.first) as usize
    }

    fn places(&self) -> std::ops::Range<u64> {
        self.first..self.end
    }

    /// A value a row.
    fn each<T>(&mut self, mut value: impl FnMut(&mut Random) -> T) -> Vec<T> {
        (0..self.len()).map(|_| value(&mut self.random)).collect()
    }

    /// A value for this share of the rows.
    fn some<T>(&mut self, share: f64, mut value: impl FnMut(&mut Random) -> T) -> Vec<Option<T>> {
        self.each(|random| random.chance(share).then(|| value(random)))
    }

    /// Row ids that no other file has.
    fn row_ids(&self, base: i64) -> impl Iterator<Item = i64> + use<> {
        (self.first..self.end).map(move |place| base + place as i64)
    }

    /// Customers at random, with repeats.
    fn customer_ids(&mut self) -> Vec<i64> {
        let people = self.people;
        let mut ids = self.each(|random| people.id(random.below(people.count)));
        if let Some(first) = ids.first_mut().filter(|_| self.known_first) {
            *first = KNOWN_CUSTOMER;
        }
        ids
    }

    /// Rising times in this file's stretch of the year.
    fn times(&mut self) -> Vec<i64> {
        let (start, span) = (self.start_us, self.span_us);
        let mut times = self.each(|random| start + random.between(0, span));
        times.sort_unstable();
        times
    }

    fn labels<'a>(&mut self, from: &[&'a str]) -> Vec<Option<&'a str>> {
        self.each(|random| Some(random.pick(from)))
    }
}

/// The same person in every table that names one.
struct Person {
    first: &'static str,
    last: &'static str,
    email: String,
    home: usize,
}

fn person(id: i64) -> Person {
    let mut random = Random::new(SEED, id as u64);
    let (first, last) = (random.pick(&FIRST_NAMES), random.pick(&LAST_NAMES));
    let email = format!(
        "{}.{}.{id}@example.org",
        first.to_lowercase(),
        last.to_lowercase()
    );
    Person {
        first,
        last,
        email,
        home: random.below(CITIES.len() as u64) as usize,
    }
}

fn customers(slice: &mut Slice) -> Result<Columns> {
    let ids: Vec<i64> = slice.places().map(|place| slice.people.id(place)).collect();
    let people: Vec<Person> = ids.iter().map(|id| person(*id)).collect();
    let mut columns = Columns::default();
    columns.longs("customer_id", ids);
    columns.strings("first_name", people.iter().map(|p| Some(p.first)));
    columns.strings("last_name", people.iter().map(|p| Some(p.last)));
    columns.strings("email", people.iter().map(|p| Some(&p.email)));
    columns.strings(
        "phone",
        slice.some(0.8, |r| {
            format!("+{}{:09}", r.between(30, 50), r.below(1_000_000_000))
        }),
    );
    columns.strings(
        "street",
        slice.each(|r| Some(format!("Hauptstraße {}", 1 + r.below(180)))),
    );
    columns.strings(
        "postcode",
        slice.each(|r| Some(format!("{:05}", r.below(100_000)))),
    );
    columns.strings("city", people.iter().map(|p| Some(CITIES[p.home])));
    columns.strings("country", people.iter().map(|p| Some(COUNTRIES[p.home])));
    columns.dates(
        "birth_date",
        slice.each(|r| r.between(-12_000, 13_000) as i32),
    );
    columns.times(
        "signed_up_at",
        slice.each(|r| START_US - r.between(0, 6 * YEAR_US)),
    );
    columns.strings(
        "segment",
        slice.labels(&["private", "business", "club", "press"]),
    );
    columns.booleans("newsletter", slice.each(|r| r.chance(0.4)));
    columns.money("credit_limit", slice.each(|r| r.between(0, 500) * 10_000))?;
    Ok(columns)
}

fn orders(slice: &mut Slice) -> Result<Columns> {
    let customer_ids = slice.customer_ids();
    let homes: Vec<usize> = customer_ids.iter().map(|id| person(*id).home).collect();
    let mut columns = Columns::default();
    columns.longs("order_id", slice.row_ids(5_000_000));
    columns.longs("customer_id", customer_ids);
    columns.times("ordered_at", slice.times());
    columns.strings(
        "status",
        slice.labels(&["placed", "paid", "shipped", "delivered", "returned"]),
    );
    columns.strings("channel", slice.labels(&["web", "app", "shop", "phone"]));
    columns.ints("items", slice.each(|r| 1 + r.exponential(1.5) as i32));
    columns.money(
        "amount",
        slice.each(|r| 199 + r.exponential(6_000.0) as i64),
    )?;
    columns.strings("currency", slice.each(|_| Some("EUR")));
    columns.strings("ship_city", homes.iter().map(|home| Some(CITIES[*home])));
    columns.strings(
        "ship_country",
        homes.iter().map(|home| Some(COUNTRIES[*home])),
    );
    columns.strings(
        "note",
        slice.some(0.06, |r| {
            format!("leave with neighbour no. {}", 1 + r.below(99))
        }),
    );
    Ok(columns)
}

fn payments(slice: &mut Slice) -> Result<Columns> {
    let customer_ids = slice.customer_ids();
    let mut columns = Columns::default();
    columns.longs("payment_id", slice.row_ids(9_000_000));
    columns.longs("order_id", slice.row_ids(5_000_000));
    columns.longs("customer_id", customer_ids);
    columns.times("paid_at", slice.times());
    columns.strings(
        "method",
        slice.labels(&["card", "transfer", "wallet", "invoice"]),
    );
    columns.money(
        "amount",
        slice.each(|r| 199 + r.exponential(6_000.0) as i64),
    )?;
    columns.strings(
        "account_end",
        slice.some(0.9, |r| format!("{:04}", r.below(10_000))),
    );
    columns.booleans("refunded", slice.each(|r| r.chance(0.03)));
    Ok(columns)
}

fn tickets(slice: &mut Slice) -> Result<Columns> {
    let customer_ids = slice.customer_ids();
    let emails: Vec<String> = customer_ids.iter().map(|id| person(*id).email).collect();
    let opened = slice.times();
    let open_for = slice.some(0.85, |r| r.exponential(3.0 * DAY_US as f64) as i64);
    let mut columns = Columns::default();
    columns.longs("ticket_id", slice.row_ids(700_000));
    columns.longs("customer_id", customer_ids);
    columns.strings("email", emails.into_iter().map(Some));
    let closed = opened
        .iter()
        .zip(open_for)
        .map(|(at, time)| time.map(|time| at + time));
    columns.times("closed_at", closed.collect::<Vec<_>>());
    columns.times("opened_at", opened);
    columns.strings(
        "category",
        slice.labels(&["delivery", "payment", "return", "account", "other"]),
    );
    columns.ints("priority", slice.each(|r| 1 + r.below(4) as i32));
    let subject = |r: &mut Random| format!("Question about order {}", 5_000_000 + r.below(240_000));
    columns.strings("subject", slice.each(|r| Some(subject(r))));
    columns.strings(
        "body",
        slice.some(0.95, |r| {
            format!("It has been {} days. Please call.", 1 + r.below(30))
        }),
    );
    columns.ints("satisfaction", slice.each(|r| 1 + r.below(5) as i32));
    Ok(columns)
}

fn profile(slice: &mut Slice) -> Result<Columns> {
    let ids: Vec<i64> = slice.places().map(|place| slice.people.id(place)).collect();
    let mut columns = Columns::default();
    columns.longs("customer_id", ids);
    columns.strings(
        "language",
        slice.labels(&["da", "de", "en", "es", "fr", "it", "nl", "pl"]),
    );
    columns.strings("device", slice.labels(&["phone", "tablet", "desktop"]));
    columns.booleans("marketing_consent", slice.some(0.9, |r| r.chance(0.5)));
    columns.times(
        "last_login_at",
        slice.some(0.97, |r| START_US + r.between(0, YEAR_US)),
    );
    columns.doubles(
        "loyalty_score",
        slice.each(|r| rounded(100.0 * r.unit(), 2)),
    );
    columns.doubles("churn_risk", slice.some(0.8, |r| rounded(r.unit(), 4)));
    columns.strings(
        "favourite_team",
        slice.some(0.6, |r| format!("Team {:02}", r.below(18))),
    );
    Ok(columns)
}

fn events(slice: &mut Slice) -> Result<Columns> {
    let customer_ids = slice.customer_ids();
    let mut columns = Columns::default();
    columns.longs("event_id", slice.row_ids(100_000_000));
    columns.longs("customer_id", customer_ids);
    columns.times("happened_at", slice.times());
    columns.strings(
        "kind",
        slice.labels(&["view", "click", "search", "add", "remove", "buy"]),
    );
    columns.strings("page", slice.labels(&PAGES));
    columns.longs("session_id", slice.each(|r| r.between(1 << 32, 1 << 34)));
    columns.ints("duration_ms", slice.each(|r| r.exponential(4_000.0) as i32));
    columns.strings(
        "referrer",
        slice.some(0.2, |r| {
            r.pick(&["news", "mail", "social", "ad"]).to_owned()
        }),
    );
    Ok(columns)
}
