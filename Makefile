# Aliases for people used to make; dev.py does the work. Example: make test ARGS="-k memories"
.PHONY: run test check bench shots golden lock release

run test check shots lock release:
	@python3 dev.py $@ $(ARGS)

bench:
	@python3 dev.py bench $(NAME)

# Rewrites the golden files and the published schemas; read the diff before you commit it.
golden:
	@.venv/bin/python -m tests.prompts.assembly.goldens --write
