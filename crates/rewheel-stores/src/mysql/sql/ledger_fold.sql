-- ledger_fold: writes the sums of several lines of the ledger into the last of them.
UPDATE rewheel_ledger SET submitted = ?, pruned = ? WHERE seq = ?
