-- latest_epoch: reads the latest epoch.
SELECT MAX(epoch) FROM rewheel_epochs;
