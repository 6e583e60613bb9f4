-- takeovers_max: how many processes a job may take with it, by kind.
SELECT name, takeovers_max FROM rewheel.kinds;
