//! Calls at once, one for each core; results come in the order of the inputs.

use std::sync::Mutex;
use std::thread;

/// The answers to all questions, in the order of the questions.
pub fn in_parallel<T: Send, R: Send>(questions: Vec<T>, answer: impl Fn(T) -> R + Sync) -> Vec<R> {
    let count = questions.len();
    let cores = thread::available_parallelism().map_or(1, usize::from).min(count.max(1));
    let left = Mutex::new(questions.into_iter().enumerate());
    let answers = Mutex::new(Vec::with_capacity(count));
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("no thread panics with it").next();
                    let Some((index, question)) = next else { return };
                    let answered = answer(question);
                    answers.lock().expect("no thread panics with it").push((index, answered));
                }
            });
        }
    });
    let mut answers = answers.into_inner().expect("all threads are done");
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
