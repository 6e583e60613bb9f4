//! Checks every interleaving of deposits and withdrawals.

use crate::budget::RetryBudget;
use loom::thread;

#[test]
fn loom_the_budget_is_never_overdrawn() {
    loom::model(|| {
        let budget = RetryBudget::ratio(0.5).floor_per_second(0).burst(2).build();
        let threads = [(); 2].map(|()| {
            let budget = budget.clone();
            thread::spawn(move || usize::from(budget.withdraw().is_ok()))
        });
        let here = usize::from(budget.withdraw().is_ok());
        let allowed = threads.map(|thread| thread.join().unwrap()).iter().sum::<usize>() + here;
        assert_eq!(allowed, 2, "three asked for the two there are");
    });
}

#[test]
fn loom_no_deposit_is_lost_while_there_is_room() {
    loom::model(|| {
        let budget = RetryBudget::ratio(0.5).floor_per_second(0).burst(2).build();
        budget.withdraw().unwrap();
        budget.withdraw().unwrap();
        let depositor = {
            let budget = budget.clone();
            thread::spawn(move || budget.deposit())
        };
        let withdrawer = {
            let budget = budget.clone();
            thread::spawn(move || u64::from(budget.withdraw().is_ok()))
        };
        budget.deposit();
        depositor.join().unwrap();
        let withdrawn = withdrawer.join().unwrap();
        assert_eq!(withdrawn + budget.balance(), 1, "two halves are one retry");
    });
}
