(method_invocation) @call
(object_creation_expression type: (_) @call)
(method_reference) @call
(annotation name: [(identifier) (scoped_identifier)] @call)
(marker_annotation name: [(identifier) (scoped_identifier)] @call)
(superclass (_) @base)
(super_interfaces (type_list (_) @base))
(extends_interfaces (type_list (_) @base))
(type_identifier) @type
(formal_parameter type: (_) @as name: (identifier) @name)
(record_declaration parameters: (formal_parameters (formal_parameter type: (_) @as name: (identifier) @field)))
(field_declaration type: (_) @as declarator: (variable_declarator name: (identifier) @field))
(local_variable_declaration type: (_) @as declarator: (variable_declarator name: (identifier) @name))
(local_variable_declaration declarator: (variable_declarator name: (identifier) @name value: [(object_creation_expression) (method_invocation)] @from))
(enhanced_for_statement type: (_) @as name: (identifier) @name)
(resource type: (_) @as name: (identifier) @name)
(method_declaration type: (_) @returns)
[(import_declaration) (package_declaration)] @import
[(class_declaration) (interface_declaration) (enum_declaration) (record_declaration)] @definition
[(annotation_type_declaration) (constructor_declaration) (compact_constructor_declaration) (method_declaration)] @definition
(modifiers [(annotation) (marker_annotation)] @decorator)
