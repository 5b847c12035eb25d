"""The captures of the lessons show what their READMEs claim. Where tshark is installed, it has to agree."""
