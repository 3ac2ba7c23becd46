"""What benchmarks of whole recipes measure: the parts of each, the trainings that its stages set up, tables and plots."""
