//! Rounds of one target: an input mutated, given to it, and its memory measured.

use std::panic::PanicHookInfo;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use rand::{Rng, SeedableRng};

use super::{memory, mutate};

/// The name of threads that a reader works on.
pub(super) const READER: &str = "reader";

/// One target at a time: what is allocated is counted for the whole process.
static TURN: Mutex<()> = Mutex::new(());
/// Panics of our own code that a reader caught.
static OURS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static HOOKED: Once = Once::new();

/// What a target may allocate at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// Bytes whatever the input's length.
    pub(super) allowance: usize,
    /// Bytes for each of its own.
    pub(super) each_byte: usize,
}

/// The rounds of a target.
pub(super) struct Fuzz {
    name: &'static str,
    seed: u64,
    rounds: u64,
    _turn: MutexGuard<'static, ()>,
}

/// Tells which round it was if the target panics.
struct Told<'a> {
    fuzz: &'a Fuzz,
    round: u64,
    input: &'a [u8],
}

impl Fuzz {
    /// So many rounds, unless FLOE_FUZZ_ROUNDS says otherwise.
    pub(super) fn of(name: &'static str, rounds: u64) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        HOOKED.call_once(|| {
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| note(panic, &usual)));
        });
        let told = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
        let seed = told("FLOE_SEED").unwrap_or_else(rand::random);
        let rounds = told("FLOE_FUZZ_ROUNDS").unwrap_or(rounds);
        println!("{name}: FLOE_SEED={seed}, {rounds} rounds");
        Self {
            name,
            seed,
            rounds,
            _turn: turn,
        }
    }

    /// Gives mutated inputs to the target, which says whether it understood them.
    pub(super) fn run(&self, inputs: Vec<Vec<u8>>, bound: Bound, target: impl Fn(&[u8]) -> bool) {
        let nothing = vec![(); inputs.len()];
        self.run_with(&nothing, inputs, bound, |(), input| target(input));
    }

    /// The same, with what each input belongs to.
    pub(super) fn run_with<T>(
        &self,
        around: &[T],
        inputs: Vec<Vec<u8>>,
        bound: Bound,
        target: impl Fn(&T, &[u8]) -> bool,
    ) {
        assert!(
            !inputs.is_empty() && inputs.len() == around.len(),
            "no corpus"
        );
        let intact = around.iter().zip(&inputs);
        let intact = intact
            .filter(|(around, input)| target(around, input))
            .count();
        // A corpus that is not understood as it is would test nothing.
        assert!(
            intact * 2 > inputs.len(),
            "{intact} of {} are understood",
            inputs.len()
        );
        println!(
            "{}: {intact} of {} understood as they are",
            self.name,
            inputs.len()
        );
        let (mut understood, mut dearest) = (0, 0.0f64);
        for round in 0..self.rounds {
            let mut random = rand::rngs::StdRng::seed_from_u64(self.seed.wrapping_add(round));
            let chosen = random.random_range(0..inputs.len());
            let input = mutate::mutate(&mut random, &inputs[chosen], &inputs);
            let told = Told {
                fuzz: self,
                round,
                input: &input,
            };
            let before = memory::begin(self.seed, round);
            understood += u64::from(target(&around[chosen], &input));
            let grown = memory::grown(before);
            let most = bound.allowance + bound.each_byte * input.len();
            assert!(
                grown <= most,
                "{grown} bytes were allocated for {} bytes, and {most} may be",
                input.len()
            );
            dearest = dearest.max(grown as f64 / most as f64);
            let ours = std::mem::take(&mut *OURS.lock().unwrap_or_else(PoisonError::into_inner));
            assert!(ours.is_empty(), "a reader panicked: {ours:?}");
            drop(told);
        }
        println!(
            "{}: {understood} of {} understood; at most {dearest:.3} of the memory allowed",
            self.name, self.rounds
        );
    }
}

/// Parquet's decoder may panic on damaged bytes, which the reader tells as an error; our own code may not.
fn note(panic: &PanicHookInfo<'_>, usual: &dyn Fn(&PanicHookInfo<'_>)) {
    if std::thread::current().name() != Some(READER) {
        return usual(panic);
    }
    let ours = panic.location().filter(|place| {
        let file = place.file();
        file.starts_with("crates/") || file.contains("/crates/floe")
    });
    if ours.is_some() {
        let mut all = OURS.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(panic.to_string());
    }
}

impl Told<'_> {
    fn keep(&self) -> Option<PathBuf> {
        let (fuzz, round) = (self.fuzz, self.round);
        let name = format!("floe-fuzz-{}-{}-{round}", fuzz.name, fuzz.seed);
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, self.input).ok()?;
        Some(path)
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!(
                "{}: FLOE_SEED={} fails in round {}; its input is kept in {:?}",
                self.fuzz.name,
                self.fuzz.seed,
                self.round,
                self.keep()
            );
        }
    }
}
