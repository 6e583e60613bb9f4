-- takeovers_max: reads how many processes a job may crash, by kind.
SELECT name, takeovers_max FROM rewheel.kinds;
